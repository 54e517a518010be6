"""From the bytes of a sound file to what an audio model reads."""
