vogt-catalog 1
program kafka-console-producer.sh
same-as kafka-console-producer
