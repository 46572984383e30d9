#!/bin/sh
# Simulate the converter: ./simulate.sh LP TURNS DUTY
# prints its cost (deviation from 24 V plus losses, in percent) and the highest voltage at the transistor.
# Where ngspice does not converge, or takes more than 15 s of processor time, there is no cost: a crash.
here=$(dirname "$0")
netlist=$(mktemp) && trap 'rm -f "$netlist"' EXIT
sed "s/LP/$1/g; s/TURNS/$2/g; s/DUTY/$3/g" "$here/flyback.cir" >"$netlist"
output=$(ulimit -t 15 && exec ngspice -b "$netlist" 2>&1) || { echo '{"crash": "takes too long"}'; exit 1; }
case "$output" in
*"Timestep too small"*) echo '{"crash": "timestep too small"}'; exit 1 ;;
esac
echo "$output" | awk '
    $1 == "vout" { vout = $3 }
    $1 == "iin" { input = -12 * $3 }
    $1 == "drain" { drain = $3 }
    END {
        efficiency = input > 0 ? vout ^ 2 / 50 / input : 2
        if (efficiency > 1.05) { print "{\"crash\": \"energy from nowhere\"}"; exit 1 }  # the integration blew up
        off = 100 * (vout > 24 ? vout - 24 : 24 - vout) / 24
        printf "{\"objective\": %.4f, \"drain\": %.1f}\n", off + 100 * (1 - efficiency), drain
    }'
