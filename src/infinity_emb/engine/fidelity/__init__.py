"""The self-check: do the vectors and scores of a loaded model equal those of an independent float32 computation?"""
