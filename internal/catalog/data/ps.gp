vogt-catalog 1
program ps.gp
same-as ps.get-itemproperty
