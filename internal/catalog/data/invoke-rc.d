vogt-catalog 1
program invoke-rc.d
about starts and stops services
parser none
form version when operands 1 and operand 1 is --version|--help : exec : text
form other : write destroy exec high : text...

example invoke-rc.d --version => exec
example invoke-rc.d zzz       => destroy exec write
