# Twenty duels from R over HTTP: `Rscript study.R LINK`, with a participant's link.  Needs the package httr2.
library(httr2)

link <- strsplit(commandArgs(trailingOnly = TRUE)[1], "/p/")[[1]]
address <- paste0(link[1], "/api/v1")

askwise <- function(path, ...) {
  call <- request(paste0(address, path)) |>
    req_auth_bearer_token(link[2]) |>
    # every request may be sent again: the same answer twice counts once
    req_retry(max_tries = 10, is_transient = \(reply) resp_status(reply) %in% c(429, 502, 503, 504)) |>
    req_error(body = \(reply) resp_body_json(reply)$error$message)
  if (...length() > 0) call <- req_body_json(call, list(...), auto_unbox = TRUE, digits = NA)
  resp_body_json(req_perform(call))
}

study <- paste0("/studies/", askwise("/whoami")$study)
question <- askwise(paste0(study, "/ask"), context = NULL)
for (number in 1:20) {
  gains <- sapply(question$options, \(option) option$gain)
  better <- which.min(abs(gains - 25)) - 1 # ask a person here; this one likes 25 dB
  told <- askwise(paste0(study, "/tell"), question = question$id, answer = better, `next` = TRUE)
  question <- told$`next`
}
cat("Answers:", told$answers, "\n")
