"""Why a run failed: from what it left behind to words that a student can act on."""
