vogt-catalog 1
program ps.sv
same-as ps.set-variable
