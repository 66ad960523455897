vogt-catalog 1
program cmd.rd
about removes folders
parser dos

/s : write destroy critical
/q
/?
form run : write destroy : delete+

example cmd.rd build => write destroy
example cmd.rd /s /q build => write destroy
example cmd.rd /x build => write destroy opaque
