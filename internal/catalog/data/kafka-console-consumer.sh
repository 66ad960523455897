vogt-catalog 1
program kafka-console-consumer.sh
same-as kafka-console-consumer
