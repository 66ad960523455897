vogt-catalog 1
program ps.r
same-as ps.invoke-history
