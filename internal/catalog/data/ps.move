vogt-catalog 1
program ps.move
same-as ps.move-item
