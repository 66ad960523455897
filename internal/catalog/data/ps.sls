vogt-catalog 1
program ps.sls
same-as ps.select-string
