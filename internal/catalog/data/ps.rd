vogt-catalog 1
program ps.rd
same-as ps.remove-item
