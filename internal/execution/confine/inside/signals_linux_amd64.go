package inside

// restorerFlag is SA_RESTORER: on this machine the kernel wants to be told how to
// return from a handler.
const restorerFlag = 0x04000000
