vogt-catalog 1
program ps.clp
same-as ps.clear-itemproperty
