vogt-catalog 1
program ps.ni
same-as ps.new-item
