package inside

// restorerFlag is nothing: on this machine the kernel knows how to return from a
// handler.
const restorerFlag = 0
