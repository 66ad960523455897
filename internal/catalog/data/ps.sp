vogt-catalog 1
program ps.sp
same-as ps.set-itemproperty
