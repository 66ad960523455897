vogt-catalog 1
program update-rc.d
about sets which services start
parser none
form version when operands 1 and operand 1 is --version|--help : exec : text
form other : write high : text...

example update-rc.d --version => exec
example update-rc.d zzz       => write
