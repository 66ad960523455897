vogt-catalog 1
program kafka-topics.sh
same-as kafka-topics
