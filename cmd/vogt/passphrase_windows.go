package main

// The console of the process.
const consoleIn, consoleOut = "CONIN$", "CONOUT$"
