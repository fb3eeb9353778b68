# Twenty duels from R: `Rscript study.R` beside askwise.toml.  Needs the package jsonlite.
library(jsonlite)

system("rm -f requests replies; mkfifo requests replies")
system("askwise shell --json < requests > replies", wait = FALSE)
requests <- fifo("requests", "w", blocking = TRUE)
replies <- fifo("replies", "r", blocking = TRUE)

askwise <- function(...) {
  writeLines(toJSON(list(...), auto_unbox = TRUE, null = "null", digits = NA), requests)
  flush(requests)
  reply <- fromJSON(readLines(replies, 1), simplifyVector = FALSE)
  if (!is.null(reply$error)) stop(reply$error)
  reply
}

for (number in 1:20) {
  question <- askwise(do = "ask")
  gains <- sapply(question$options, function(option) option$gain)
  better <- which.min(abs(gains - 25)) - 1 # ask a person here; this one likes 25 dB
  askwise(do = "tell", question = question$id, answer = better)
}
cat("Recommended gain:", askwise(do = "best")$params$gain, "\n")

close(requests)
close(replies)
unlink(c("requests", "replies"))
