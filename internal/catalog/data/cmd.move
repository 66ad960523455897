vogt-catalog 1
program cmd.move
about moves files
parser dos

/y
/-y
/?
form share1 when operand 1 is \\*|//* : write net high : write write
form share2 when operand 2 is \\*|//* : write net high : write write
form run : write : write+ write

example cmd.move a b => write
example cmd.move /y a b => write
example cmd.move /x a b => write opaque
