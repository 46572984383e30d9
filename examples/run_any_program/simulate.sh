#!/bin/sh
# A controller test in any language: gains in, cost out. It falls over if kp * kd is too large.
#   ./simulate.sh KP KD
# prints the cost and how far the arm reached as a line of JSON, or fails with exit code 1.
exec awk -v kp="$1" -v kd="$2" 'BEGIN {
    if (kp * kd > 3) {
        printf "{\"crash\": \"oscillates\", \"reach\": %.6f}\n", kp
        exit 1
    }
    cost = (kp - 6) ^ 2 + 10 * (kd - 0.4) ^ 2
    printf "{\"objective\": %.9f, \"reach\": %.6f}\n", cost, kp + 2 * kd
}'
