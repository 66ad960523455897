vogt-catalog 1
program ps.h
same-as ps.get-history
