// Holds the precompiled header that every room reuses; it has no code of its own.
