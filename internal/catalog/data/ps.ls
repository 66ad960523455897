vogt-catalog 1
program ps.ls
same-as ps.get-childitem
