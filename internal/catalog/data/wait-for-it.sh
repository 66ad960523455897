vogt-catalog 1
program wait-for-it.sh
same-as wait-for-it
