package code

import "strings"

// readRedis reads commands of Redis, one a line. It reports whether all are
// known.
func readRedis(f *Finding, text string) bool {
	sure := true
	for line := range strings.Lines(text) {
		words, ok := dotArgs(strings.TrimSpace(line))
		sure = sure && ok
		if len(words) > 0 {
			sure = redisCommand(f, words) && sure
		}
	}
	return sure
}

func redisCommand(f *Finding, words []string) bool {
	name, sub := strings.ToLower(words[0]), ""
	if len(words) > 1 {
		sub = strings.ToLower(words[1])
	}
	switch name {
	case "get", "mget", "getrange", "getbit", "strlen", "substr", "exists", "keys", "scan", "type", "ttl", "pttl", "expiretime", "pexpiretime",
		"randomkey", "dbsize", "dump", "hget", "hmget", "hgetall", "hkeys", "hvals", "hlen", "hexists", "hscan", "hstrlen", "hrandfield",
		"lrange", "llen", "lindex", "lpos", "smembers", "sismember", "smismember", "scard", "srandmember", "sscan", "sinter", "sunion",
		"sdiff", "sintercard", "zrange", "zrangebyscore", "zrangebylex", "zrevrange", "zrevrangebyscore", "zrevrangebylex", "zscore",
		"zmscore", "zrank", "zrevrank", "zcard", "zcount", "zlexcount", "zscan", "zinter", "zunion", "zdiff", "zintercard", "zrandmember",
		"bitcount", "bitpos", "pfcount", "xrange", "xrevrange", "xlen", "xread", "xinfo", "xpending", "geopos", "geodist", "geohash",
		"geosearch", "georadius_ro", "sort_ro", "ping", "echo", "info", "time", "lastsave", "role", "command", "object", "pubsub",
		"subscribe", "psubscribe", "monitor", "select", "auth", "hello", "quit", "lolwut", "touch", "readonly", "exit":
		return true
	case "config", "client", "acl", "cluster", "memory", "slowlog", "latency", "script", "function", "module", "debug":
		return redisAdmin(f, name, sub)
	case "set", "setex", "psetex", "setnx", "mset", "msetnx", "getset", "getex", "append", "setrange", "setbit", "bitop", "bitfield", "incr",
		"incrby", "incrbyfloat", "decr", "decrby", "expire", "pexpire", "expireat", "pexpireat", "persist", "rename", "renamenx", "copy",
		"restore", "hset", "hmset", "hsetnx", "hincrby", "hincrbyfloat", "lpush", "rpush", "lpushx", "rpushx", "linsert", "lset",
		"rpoplpush", "lmove", "sadd", "smove", "sinterstore", "sunionstore", "sdiffstore", "zadd", "zincrby", "zinterstore", "zunionstore",
		"zdiffstore", "zrangestore", "geoadd", "geosearchstore", "georadius", "georadiusbymember", "pfadd", "pfmerge", "xadd", "xack",
		"xclaim", "xautoclaim", "xgroup", "xreadgroup", "publish", "spublish", "sort", "save", "bgsave", "bgrewriteaof", "swapdb", "move", "multi",
		"exec", "watch", "unwatch", "discard", "blmove", "brpoplpush":
		f.Write = true
		return true
	case "del", "unlink", "flushall", "flushdb", "getdel", "hdel", "lpop", "rpop", "blpop", "brpop", "lmpop", "lrem", "ltrim", "srem", "spop",
		"zrem", "zpopmin", "zpopmax", "zremrangebyrank", "zremrangebyscore", "zremrangebylex", "xdel", "xtrim":
		f.Write, f.Destroy = true, true
		return true
	case "shutdown", "failover":
		f.Destroy = true
	case "replicaof", "slaveof", "migrate":
		f.Write, f.Destroy, f.Network = true, true, true
		if len(words) > 1 && sub != "no" {
			f.contacts(words[1], true)
		}
	case "eval", "evalsha", "fcall":
		f.Write = true
	}
	return false
}

// redisAdmin judges commands that have subcommands.
func redisAdmin(f *Finding, name, sub string) bool {
	switch name + " " + sub {
	case "config get", "client list", "client getname", "client id", "client info", "acl list", "acl whoami", "acl users", "acl cat", "acl getuser",
		"cluster info", "cluster nodes", "cluster slots", "cluster shards", "memory usage", "memory stats", "memory doctor",
		"slowlog get", "slowlog len", "latency latest", "latency history", "latency doctor", "script exists", "function list", "module list":
		return true
	case "client kill", "script flush", "function flush", "function delete", "script kill", "cluster reset", "slowlog reset", "debug segfault":
		f.Destroy = true
		f.Write = f.Write || name != "client"
	case "acl setuser", "acl deluser", "acl load":
		f.Write, f.Privilege = true, true
	default:
		f.Write = true
	}
	return false
}
