vogt-catalog 1
program ps.gi
same-as ps.get-item
