#!/bin/sh
# A robot that walks or falls, for `askwise run --command './gait.sh {stride} {lift} {gait}'`.
# Exits with 0 if it walked. Long steps need a high lift, and trotting forgives more than walking.
stride=$1 lift=$2 gait=$3
case $gait in trot) slack=1.5 ;; *) slack=1.0 ;; esac
awk -v s="$stride" -v l="$lift" -v k="$slack" 'BEGIN {
    off = (s - 0.45) / 0.15
    need = (log(l) - log(3 + 10 * s)) / 0.7
    exit !(off * off + need * need < k)
}'
