# Data and estimates of R, against which benchmarks/real_raters.py and a test check ours.
#
#     Rscript benchmarks/raters.R tests/data      # needs the packages psychotools and psyphy
#
# SoundQuality: psychotools 0.7-2 (GPL-2 | GPL-3); Choisel and Wickelmaier (2007), J. Acoust. Soc. Am. 121, 388.
# ecc2: psyphy 0.2-3 (GPL); Yssaad-Fesselier and Knoblauch (2006), Behav. Res. Methods 38, 28.

library(psychotools)
library(psyphy)
out <- commandArgs(trailingOnly = TRUE)[1]
write <- function(table, name) write.csv(table, file.path(out, name), row.names = FALSE, quote = FALSE)

# Each of 40 listeners compares eight ways to reproduce the same piece of music: all 28 pairs, the first time.
data(SoundQuality)
chosen <- subset(SoundQuality, time == "before" & repet == 1 & progmat == "Beethoven")
judged <- as.matrix(chosen$preference) # 1: the first of the pair is preferred, -1: the second
items <- labels(chosen$preference)
pairs <- which(upper.tri(diag(length(items))), arr.ind = TRUE) # in the order of the columns, as is checked
stopifnot(colnames(judged) == paste(items[pairs[, 1]], items[pairs[, 2]], sep = ":"))
stopifnot(!anyNA(judged), judged %in% c(1, -1), !duplicated(chosen$id))
answers <- data.frame(
  listener = rep(chosen$id, ncol(judged)),
  first = rep(items[pairs[, 1]], each = nrow(judged)),
  second = rep(items[pairs[, 2]], each = nrow(judged)),
  won = as.integer(c(judged) == 1)
)
write(answers[order(answers$listener), ], "sound-quality.csv")

# Worths: Bradley and Terry's (logit), and Thurstone's case V (probit) of the same comparisons.
logit <- c(0, unclass(coef(btmodel(chosen$preference, ref = items[1]))))
design <- outer(answers$first, items[-1], "==") - outer(answers$second, items[-1], "==")
probit <- c(0, coef(glm(answers$won ~ 0 + design, family = binomial("probit"))))
estimates <- data.frame(item = items, bradley_terry = logit - mean(logit), thurstone = probit - mean(probit))
write(format(estimates, digits = 10), "sound-quality-r.csv")

# The contrast at which a letter is found (or named) in 62.5% of trials, half way from the 25% of guesses to 1.
data(ecc2)
write(ecc2, "ecc2.csv")
threshold <- function(part) {
  fitted <- glm(cbind(Correct, Incorrect) ~ log10(Contr), family = binomial(mafc.probit(4)), data = part)
  at <- unname(-coef(fitted)[1] / coef(fitted)[2])
  slopes <- c(1, at) / coef(fitted)[2] # delta method: deviation of the logarithm
  data.frame(
    task = part$task[1], size = part$Size[1], threshold = 10^at,
    log10_deviation = sqrt(drop(slopes %*% vcov(fitted) %*% slopes))
  )
}
thresholds <- do.call(rbind, lapply(split(ecc2, ~ task + Size), threshold))
write(format(thresholds, digits = 10), "ecc2-r.csv")
