vogt-catalog 1
program ps.sl
same-as ps.set-location
