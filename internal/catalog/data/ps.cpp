vogt-catalog 1
program ps.cpp
same-as ps.copy-itemproperty
