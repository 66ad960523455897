package code

import "strings"

// statement judges one statement.
func (r *sqlReader) statement(t []sqlToken) {
	first := t[0]
	if first.kind != sqlWord && first.text != "(" {
		r.sure = false
		r.calls(t)
		return
	}
	switch first.text {
	case "select", "with", "values", "table", "(", "from":
		r.query(t)
	case "show", "describe", "desc", "help":
		r.calls(t)
	case "explain":
		r.explain(t)
	case "begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release":
		r.transaction(t)
	case "use":
		r.sure = r.sure && len(t) == 2
	case "detach":
		r.sure = r.sure && len(t) < 4
	case "set":
		r.set(t)
	case "pragma":
		r.pragma(t)
	case "copy":
		r.copyTable(t)
	default:
		r.change(t)
	}
}

// transaction judges the statements of transactions. In SQL Server a BEGIN may
// be followed by any statement.
func (r *sqlReader) transaction(t []sqlToken) {
	if has(t, "prepared") {
		r.Write = true
	}
	for i, w := range t[1:] {
		switch prev := t[i].text; {
		case w.kind == sqlWord && transactionWord(w.text):
		case w.kind != sqlPunct && i < 3 && (prev == "savepoint" || prev == "to" || prev == "release" || prev == "prepared"):
		case w.kind == sqlPunct && w.text == ",":
		default:
			r.sure = false
		}
	}
	r.effects(t[1:])
}

func transactionWord(word string) bool {
	switch word {
	case "transaction", "tran", "work", "savepoint", "to", "and", "no", "not", "chain", "release", "read", "only", "write", "isolation", "level",
		"serializable", "repeatable", "committed", "uncommitted", "deferred", "deferrable", "immediate", "exclusive", "concurrent",
		"with", "consistent", "snapshot", "prepared":
		return true
	}
	return false
}

// change judges a statement that is not there to read.
func (r *sqlReader) change(t []sqlToken) {
	switch t[0].text {
	case "insert", "replace", "merge", "upsert", "comment", "analyze", "reindex", "cluster", "optimize", "refresh", "repair", "rename", "notify", "lock", "unlock", "checkpoint":
		r.Write = true
	case "update":
		r.Write = true
		r.Destroy = r.Destroy || !has(t, "where")
	case "delete", "drop", "truncate", "purge", "reset":
		r.Write, r.Destroy = true, true
	case "create", "alter":
		r.define(t)
		return
	case "grant":
		r.Write, r.Privilege = true, true
	case "revoke":
		r.Write = true
	case "attach", "vacuum":
		r.file(t)
		return
	case "load":
		// LOAD DATA INFILE reads a file; the LOAD of PostgreSQL loads code.
		r.Write = r.Write || has(t, "infile")
		if i := index(t, "infile"); i >= 0 && i+1 < len(t) && t[i+1].kind != sqlWord {
			r.reads(t[i+1].text, true)
		}
		r.sure = false
	case "kill", "shutdown":
		r.Destroy = true
	case "exec", "execute", "call", "do":
		r.execute(t)
		return
	default:
		r.sure = false
	}
	r.effects(t[1:])
	r.calls(t)
}

// define judges CREATE and ALTER.
func (r *sqlReader) define(t []sqlToken) {
	r.Write = true
	for _, w := range t[1:min(len(t), 5)] {
		switch w.text {
		case "user", "role", "system", "login":
			r.Privilege = true
		case "extension", "language", "server", "plugin", "function", "procedure", "trigger", "rule", "event", "subscription", "foreign":
			r.sure = false // brings code or connections along
		}
	}
	if t[0].text == "alter" && (has(t, "drop") || has(t, "truncate")) {
		r.Destroy = true
	}
	if r.lang == SQL {
		r.effects(t[1:]) // SQL Server wants no semicolon before the next statement
	}
	r.calls(t)
}

// file judges ATTACH and VACUUM INTO, which create a file.
func (r *sqlReader) file(t []sqlToken) {
	r.Write = true
	for i, w := range t {
		if i > 0 && (w.kind == sqlString || w.kind == sqlQuoted) && (t[i-1].text == "into" || t[i-1].text == "attach" || t[i-1].text == "database") && w.text != ":memory:" {
			r.writes(w.text, true)
			if strings.HasPrefix(w.text, "file:") {
				r.sure = false // a URI leads elsewhere than a file of that name
			}
		}
	}
	r.calls(t)
}

// execute judges calls of procedures. The command shell of SQL Server is known,
// all else is not.
func (r *sqlReader) execute(t []sqlToken) {
	r.sure = false
	for i, w := range t {
		if w.text == "xp_cmdshell" {
			if i+1 < len(t) && t[i+1].kind == sqlString {
				r.shell(t[i+1].text)
			} else {
				r.Starts = true
			}
		}
	}
	r.calls(t)
}

// explain judges EXPLAIN, which executes when it has ANALYZE.
func (r *sqlReader) explain(t []sqlToken) {
	if !has(t, "analyze") && !has(t, "analyse") {
		r.calls(t)
		return
	}
	where := has(t, "where")
	for i, w := range t[1:] {
		switch w.text {
		case "select", "with", "values", "table":
			r.query(t[i+1:])
			return
		case "insert", "update", "delete", "merge", "create", "replace":
			r.Write = true
			r.Destroy = r.Destroy || w.text == "delete" || w.text == "update" && !where
		}
	}
	r.sure = false
	r.calls(t)
}

// set judges SET: what changes only this session's limits and looks is nothing.
func (r *sqlReader) set(t []sqlToken) {
	i := 1
	if i < len(t) && (t[i].text == "session" || t[i].text == "local") {
		i++
	}
	if i >= len(t) {
		return
	}
	switch t[i].text {
	case "statement_timeout", "lock_timeout", "timezone", "time", "names", "client_encoding", "datestyle", "client_min_messages", "work_mem", "extra_float_digits", "nocount":
		r.sure = r.sure && len(t) < 8 && !hasPunct(t, "(")
		r.effects(t[i+1:])
		return
	case "global", "persist", "password":
		r.Write = true
	case "role", "authorization":
		r.Privilege = true
	}
	r.sure = false
	r.calls(t)
}

// copyTable judges the COPY of PostgreSQL and psql's \copy.
func (r *sqlReader) copyTable(t []sqlToken) {
	depth := 0
	for i, w := range t {
		switch {
		case w.text == "(" && w.kind == sqlPunct:
			depth++
		case w.text == ")" && w.kind == sqlPunct:
			depth--
		case depth > 0 || w.kind != sqlWord || w.text != "to" && w.text != "from":
		default:
			if i > 1 && t[1].text == "(" {
				r.query(t[1:i])
			}
			r.copyTarget(t[i:])
			return
		}
	}
	r.sure = false
}

func (r *sqlReader) copyTarget(t []sqlToken) {
	out := t[0].text == "to"
	r.Write = r.Write || !out
	at := func(i int) sqlToken {
		if i < len(t) {
			return t[i]
		}
		return sqlToken{}
	}
	switch target := at(1); {
	case target.kind == sqlWord && target.text == "program":
		if at(2).kind == sqlString {
			r.shell(at(2).text)
		} else {
			r.Starts = true
		}
	case target.kind == sqlString && out:
		r.writes(target.text, true)
	case target.kind == sqlString:
		r.reads(target.text, true)
	case target.kind == sqlWord && (target.text == "stdin" || target.text == "stdout" || target.text == "pstdin" || target.text == "pstdout"):
		// After FROM STDIN come lines of data, which are no statements.
		r.sure = r.sure && out
	default:
		r.Write = true
		r.sure = false
	}
}

// query judges a statement that reads, unless it holds one that does not.
func (r *sqlReader) query(t []sqlToken) {
	r.effects(t)
	r.calls(t)
}

// effects looks for the words that make a query change something.
func (r *sqlReader) effects(t []sqlToken) {
	for i, w := range t {
		if w.kind != sqlWord {
			if r.lang == SQL && i > 0 && (t[i-1].text == "from" || t[i-1].text == "join") && w.kind != sqlPunct && (w.kind == sqlString || strings.ContainsAny(w.text, "./:")) {
				r.sure = false // DuckDB reads a file or URL
			}
			continue
		}
		if i > 0 && t[i-1].text == "on" && (w.text == "delete" || w.text == "update") {
			continue // what happens to references
		}
		call := i+1 < len(t) && t[i+1].text == "(" && t[i+1].kind == sqlPunct
		member := i > 0 && t[i-1].text == "."
		if member {
			continue
		}
		switch w.text {
		case "into":
			r.into(t[i:], i > 0 && (t[i-1].text == "insert" || t[i-1].text == "replace" || t[i-1].text == "merge" || t[i-1].text == "ignore"))
		case "insert", "replace":
			if !call {
				r.Write, r.sure = true, false
			}
		case "update", "merge":
			r.Write, r.sure = true, false
		case "delete":
			r.Write, r.Destroy, r.sure = true, true, false
		case "truncate", "drop":
			if !call {
				r.Write, r.Destroy, r.sure = true, true, false
			}
		case "kill", "shutdown", "backup", "restore", "dbcc", "reconfigure", "deny", "revoke", "bulk", "waitfor", "declare", "attach", "vacuum",
			"pragma", "reindex", "checkpoint", "openrowset", "openquery", "opendatasource", "disable", "enable", "copy", "load":
			// Statements of their own where no semicolon is needed.
			r.sure = r.sure && r.lang != SQL
		case "share", "lock", "create", "alter", "grant", "call", "execute", "exec", "procedure":
			r.sure = false
		}
	}
}

// into judges the target of SELECT … INTO.
func (r *sqlReader) into(t []sqlToken, insert bool) {
	r.Write = true
	if insert || len(t) < 2 {
		return
	}
	if (t[1].text == "outfile" || t[1].text == "dumpfile") && len(t) > 2 && t[2].kind != sqlWord {
		r.writes(t[2].text, true)
	}
}

// calls looks at everything that may be the call of a function: a name before a
// parenthesis. What is not known to compute only may do anything.
func (r *sqlReader) calls(t []sqlToken) {
	for i := 0; i+1 < len(t); i++ {
		w := t[i]
		if t[i+1].kind != sqlPunct || t[i+1].text != "(" || w.kind != sqlWord && w.kind != sqlQuoted {
			continue
		}
		name := strings.ToLower(w.text)
		prev := sqlToken{}
		if i > 0 {
			prev = t[i-1]
		}
		switch {
		case prev.kind == sqlPunct && prev.text == ".":
			if i > 1 && t[i-2].text == "pg_catalog" && sqlPure(name) {
				continue
			}
		case w.kind == sqlWord && sqlKeyword(name), sqlPure(name):
			continue
		case prev.kind == sqlWord && (prev.text == "as" || prev.text == "with" || prev.text == "recursive" || prev.text == "into" || prev.text == "references"):
			continue // a name with its columns
		case prev.kind == sqlWord && (prev.text == "table" || prev.text == "exists") && t[0].text == "create":
			continue
		}
		r.sure = false
		r.call(name, t[i+1:])
	}
}

// call judges the call of a function that is not known to be pure; args begins
// with the parenthesis.
func (r *sqlReader) call(name string, args []sqlToken) {
	arg := func(n int) (string, bool) {
		i := 1 + 2*n
		if i+1 >= len(args) || args[i].kind != sqlString || args[i+1].text != "," && args[i+1].text != ")" {
			return "", false
		}
		return args[i].text, true
	}
	switch name {
	case "pg_terminate_backend", "pg_cancel_backend":
		r.Destroy = true
	case "pg_read_file", "pg_read_binary_file", "pg_ls_dir", "load_file", "readfile", "fsdir", "lo_import", "pg_stat_file":
		r.reads(arg(0))
		r.Write = r.Write || name == "lo_import"
	case "lo_export", "pg_file_write":
		n := 0
		if name == "lo_export" {
			n = 1
		}
		r.writes(arg(n))
	case "writefile":
		r.writes(arg(0))
	case "lo_unlink", "pg_file_unlink":
		r.deletes(arg(0))
	case "nextval", "setval", "set_config", "lo_create", "lo_from_bytea", "lo_put", "pg_reload_conf", "pg_rotate_logfile", "pg_switch_wal", "pg_notify", "pg_promote":
		r.Write = true
	case "dblink", "dblink_connect", "dblink_exec", "dblink_connect_u", "http_get", "http_post", "http":
		r.Network = true
	case "sys_exec", "sys_eval":
		if text, ok := arg(0); ok {
			r.shell(text)
		} else {
			r.Starts = true
		}
	case "edit":
		r.Starts = true
	}
}

// pragma judges the PRAGMA of SQLite.
func (r *sqlReader) pragma(t []sqlToken) {
	i := 1
	if len(t) > 3 && t[2].text == "." {
		i = 3
	}
	if i >= len(t) {
		r.sure = false
		return
	}
	value := i+1 < len(t)
	switch t[i].text {
	case "table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "foreign_key_list", "foreign_key_check",
		"integrity_check", "quick_check", "database_list", "compile_options", "collation_list", "function_list", "module_list",
		"pragma_list", "data_version", "freelist_count", "page_count",
		// These last as long as the connection.
		"foreign_keys", "cache_size", "busy_timeout", "synchronous", "query_only", "temp_store", "mmap_size", "case_sensitive_like",
		"automatic_index", "cell_size_check", "recursive_triggers", "reverse_unordered_selects", "threads", "trusted_schema", "defer_foreign_keys":
	case "user_version", "schema_version", "application_id", "auto_vacuum", "encoding", "journal_mode", "journal_size_limit",
		"page_size", "secure_delete", "wal_autocheckpoint", "locking_mode", "max_page_count", "cache_spill", "default_cache_size":
		r.Write = r.Write || value
	default:
		r.Write, r.sure = r.Write || value, false
	}
	r.effects(t[1:])
}

func has(t []sqlToken, word string) bool { return index(t, word) >= 0 }

func index(t []sqlToken, word string) int {
	for i, w := range t {
		if w.kind == sqlWord && w.text == word {
			return i
		}
	}
	return -1
}

func hasPunct(t []sqlToken, text string) bool {
	for _, w := range t {
		if w.kind == sqlPunct && w.text == text {
			return true
		}
	}
	return false
}

// sqlKeyword reports whether a word before a parenthesis is no function.
func sqlKeyword(word string) bool {
	switch word {
	case "all", "and", "any", "array", "as", "between", "by", "case", "check", "constraint", "default", "distinct", "else", "end",
		"escape", "except", "exists", "explain", "filter", "from", "glob", "group", "having", "ilike", "in", "intersect", "is", "join",
		"key", "lateral", "like", "limit", "materialized", "not", "offset", "on", "or", "order", "over", "partition", "primary",
		"recursive", "regexp", "returning", "rlike", "row", "rows", "select", "set", "sets", "similar", "some", "table", "then",
		"union", "unique", "using", "values", "when", "where", "window", "within", "with", "xor", "rollup", "cube", "grouping":
		return true
	}
	return false
}

// sqlPure reports whether a function (or the name of a type, which takes
// parentheses too) does nothing but compute from its arguments and the
// catalogs, in every dialect that has it.
func sqlPure(name string) bool {
	switch name {
	// Aggregates and windows.
	case "avg", "count", "max", "min", "sum", "total", "group_concat", "string_agg", "array_agg", "json_agg", "jsonb_agg",
		"json_object_agg", "jsonb_object_agg", "json_group_array", "json_group_object", "bool_and", "bool_or", "every", "bit_and",
		"bit_or", "bit_xor", "stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp", "corr", "covar_pop",
		"covar_samp", "percentile_cont", "percentile_disc", "mode", "row_number", "rank", "dense_rank", "percent_rank", "cume_dist",
		"ntile", "lag", "lead", "first_value", "last_value", "nth_value", "any_value", "approx_count_distinct",
		// Numbers.
		"abs", "acos", "asin", "atan", "atan2", "cbrt", "ceil", "ceiling", "cos", "cot", "degrees", "div", "exp", "floor", "ln",
		"log", "log10", "log2", "mod", "pi", "pow", "power", "radians", "rand", "random", "round", "sign", "sin", "sqrt", "tan",
		"trunc", "truncate", "width_bucket", "greatest", "least", "conv", "crc32", "randomblob", "zeroblob",
		// Strings.
		"ascii", "bit_length", "btrim", "char_length", "character_length", "chr", "concat", "concat_ws", "decode", "encode", "elt",
		"field", "find_in_set", "format", "from_base64", "hex", "initcap", "insert", "instr", "lcase", "left", "length", "locate",
		"lower", "lpad", "ltrim", "md5", "mid", "octet_length", "overlay", "position", "printf", "quote", "quote_ident",
		"quote_literal", "quote_nullable", "regexp_count", "regexp_instr", "regexp_like", "regexp_match", "regexp_matches",
		"regexp_replace", "regexp_split_to_array", "regexp_split_to_table", "regexp_substr", "repeat", "replace", "reverse", "right",
		"rpad", "rtrim", "sha", "sha1", "sha2", "sha224", "sha256", "sha384", "sha512", "soundex", "space", "split_part",
		"starts_with", "strcmp", "string_to_array", "string_to_table", "strpos", "substr", "substring", "substring_index", "to_base64",
		"to_hex", "translate", "trim", "ucase", "unhex", "unicode", "unistr", "upper", "to_char", "to_number",
		// Dates.
		"age", "adddate", "addtime", "clock_timestamp", "curdate", "current_date", "current_time", "current_timestamp", "curtime",
		"date", "date_add", "date_bin", "date_format", "date_part", "date_sub", "date_trunc", "datediff", "datetime", "day",
		"dayname", "dayofmonth", "dayofweek", "dayofyear", "extract", "from_unixtime", "hour", "interval", "isfinite", "julianday",
		"justify_days", "justify_hours", "last_day", "localtime", "localtimestamp", "make_date", "make_interval", "make_time",
		"make_timestamp", "make_timestamptz", "minute", "month", "monthname", "now", "period_diff", "quarter", "second",
		"statement_timestamp", "str_to_date", "strftime", "subdate", "sysdate", "time", "time_format", "timediff", "timestamp",
		"timestampadd", "timestampdiff", "timezone", "to_date", "to_days", "to_timestamp", "transaction_timestamp", "unix_timestamp",
		"unixepoch", "utc_date", "utc_time", "utc_timestamp", "week", "weekday", "year", "yearweek",
		// Choices, casts, arrays, JSON.
		"cast", "convert", "coalesce", "if", "ifnull", "iif", "isnull", "nullif", "nvl", "typeof", "pg_typeof", "array_append",
		"array_cat", "array_dims", "array_length", "array_lower", "array_position", "array_positions", "array_prepend",
		"array_remove", "array_replace", "array_to_string", "array_upper", "cardinality", "unnest", "generate_series",
		"generate_subscripts", "json", "json_array", "json_array_elements", "json_array_elements_text", "json_array_length",
		"json_build_array", "json_build_object", "json_contains", "json_each", "json_each_text", "json_extract",
		"json_extract_path", "json_extract_path_text", "json_insert", "json_keys", "json_length", "json_object",
		"json_object_keys", "json_patch", "json_pretty", "json_quote", "json_remove", "json_replace", "json_search", "json_set",
		"json_tree", "json_type", "json_typeof", "json_unquote", "json_valid", "jsonb_array_elements",
		"jsonb_array_elements_text", "jsonb_array_length", "jsonb_build_array", "jsonb_build_object", "jsonb_each",
		"jsonb_each_text", "jsonb_extract_path", "jsonb_extract_path_text", "jsonb_insert", "jsonb_object_keys",
		"jsonb_path_exists", "jsonb_path_query", "jsonb_pretty", "jsonb_set", "jsonb_strip_nulls", "jsonb_typeof", "row_to_json",
		"to_json", "to_jsonb", "gen_random_uuid", "uuid", "likelihood", "likely", "unlikely", "bm25", "highlight", "snippet",
		"to_tsquery", "to_tsvector", "plainto_tsquery", "websearch_to_tsquery", "ts_rank", "ts_headline", "match", "against",
		// The server and its catalogs.
		"changes", "connection_id", "current_database", "current_schema", "current_schemas", "current_setting", "current_user",
		"database", "col_description", "format_type", "has_database_privilege", "has_schema_privilege", "has_table_privilege",
		"inet_client_addr", "inet_server_addr", "last_insert_rowid", "obj_description", "pg_backend_pid", "pg_column_size",
		"pg_database_size", "pg_encoding_to_char", "pg_get_constraintdef", "pg_get_expr", "pg_get_functiondef", "pg_get_indexdef",
		"pg_get_keywords", "pg_get_serial_sequence", "pg_get_triggerdef", "pg_get_userbyid", "pg_get_viewdef",
		"pg_indexes_size", "pg_is_in_recovery", "pg_postmaster_start_time", "pg_relation_size", "pg_size_bytes",
		"pg_size_pretty", "pg_table_is_visible", "pg_table_size", "pg_tablespace_size", "pg_total_relation_size", "schema",
		"session_user", "shobj_description", "sqlite_source_id", "sqlite_version", "to_regclass", "total_changes", "user",
		"version", "row_count", "found_rows", "pragma_table_info", "pragma_table_xinfo", "pragma_index_list", "pragma_index_info",
		"pragma_foreign_key_list", "pragma_database_list", "pragma_table_list", "pragma_compile_options", "pragma_function_list",
		// Types.
		"bigint", "binary", "bit", "blob", "bpchar", "char", "character", "dec", "decimal", "double", "enum", "float", "int",
		"integer", "nchar", "number", "numeric", "nvarchar", "smallint", "text", "timestamptz", "tinyint", "varbinary", "varchar", "varying":
		return true
	}
	return false
}
