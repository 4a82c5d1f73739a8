"""Times, traffic and distances on this machine: sweeps, OSU benchmarks, ping-pongs."""
