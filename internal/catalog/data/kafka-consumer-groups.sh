vogt-catalog 1
program kafka-consumer-groups.sh
same-as kafka-consumer-groups
