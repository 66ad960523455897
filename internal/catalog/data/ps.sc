vogt-catalog 1
program ps.sc
same-as ps.set-content
