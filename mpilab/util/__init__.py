"""Helpers that every part of the kit may import; they import no other part.

kit           where the kit's files are
files         atomic writes
toml          TOML with line numbers in errors
units         "8K", "200mbit", "5us"
text          tables, suggestions, output without control characters
processes     child processes, ended with all their descendants
namespaces    Linux namespaces, for programs that start in milliseconds
system        the packages of the operating system
door, faults  how a command-line program reports errors
"""
