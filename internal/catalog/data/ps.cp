vogt-catalog 1
program ps.cp
same-as ps.copy-item
