package code

import (
	"reflect"
	"testing"
)

// general are languages for general use: a Finding is never complete.
func TestGeneral(t *testing.T) {
	tests := []struct {
		lang Lang
		text string
		want Finding
	}{
		{Python, "import os; os.system('rm -rf build')", Finding{Shell: []string{"rm -rf build"}}},
		{Python, "import urllib.request as u; print(u.urlopen('https://example.com').read())", Finding{Network: true, Hosts: []string{"https://example.com"}}},
		{Python, "import sys; print(sys.stdin.read())", Finding{}},
		{Python, "print(\"os.system('rm')\") # os.system('rm')", Finding{}},
		{Python, "x = '''\nos.system('rm')\n'''", Finding{}},
		{Python, "import subprocess\nsubprocess.run(['rm', '-rf', 'x'])", Finding{Argv: [][]string{{"rm", "-rf", "x"}}}},
		{Python, "import subprocess\nsubprocess.run([\n  'rm', # no\n  '-rf',\n  'x',\n], check=True)", Finding{Argv: [][]string{{"rm", "-rf", "x"}}}},
		{Python, "from subprocess import run as r\nr('rm x', shell=True)", Finding{Shell: []string{"rm x"}}},
		{Python, "from subprocess import *\ncheck_call(('ls',))", Finding{Argv: [][]string{{"ls"}}}},
		{Python, "subprocess.Popen('rm -rf x'.split())", Finding{Argv: [][]string{{"rm", "-rf", "x"}}}},
		{Python, "subprocess.Popen(shlex.split('rm -rf x'))", Finding{Argv: [][]string{{"rm", "-rf", "x"}}}},
		{Python, "c = 'rm -rf x'\nos.system(c)", Finding{Shell: []string{"rm -rf x"}}},
		{Python, "c = 'rm -rf x'\nc += y\nos.system(c)", Finding{Starts: true}},
		{Python, "c = ['rm', 'x']\nsubprocess.call(c)", Finding{Argv: [][]string{{"rm", "x"}}}},
		{Python, "os.system('rm ' + 'x' 'y')", Finding{Shell: []string{"rm xy"}}},
		{Python, "os.system('rm ' + x)", Finding{Shell: []string{"rm \uE000"}}},
		{Python, "os.system(f'rm {x}')", Finding{Shell: []string{"rm \uE000"}}},
		{Python, "print(f'{os.system(\"rm x\")}')", Finding{Shell: []string{"rm x"}}},
		{Python, "os.system(r'echo \\n')", Finding{Shell: []string{`echo \n`}}},
		{Python, "os.system('echo \\x41\\u0042\\103\\n')", Finding{Shell: []string{"echo ABC\n"}}},
		{Python, "__import__('os').system('id')", Finding{Shell: []string{"id"}}},
		{Python, "import importlib; importlib.import_module('subprocess').getoutput('id')", Finding{Shell: []string{"id"}}},
		{Python, "exec(\"import os\\nos.system('id')\")", Finding{Shell: []string{"id"}}},
		{Python, "getattr(os, 'sys'+'tem')('id')", Finding{Starts: true}},
		{Python, "os.execvp('rm', ['rm', '-f', 'x'])", Finding{Argv: [][]string{{"rm", "-f", "x"}}}},
		{Python, "os.execlp('rm', 'rm', '-f', 'x')", Finding{Argv: [][]string{{"rm", "-f", "x"}}}},
		{Python, "import shutil; shutil.rmtree('/')", Finding{Write: true, Destroy: true, Deletes: []string{"/"}}},
		{Python, "from pathlib import Path\nPath('a').unlink()", Finding{Write: true, Destroy: true, Deletes: []string{"a"}}},
		{Python, "p = Path('a')\np.unlink()", Finding{Write: true, Destroy: true, Deletes: []string{"a"}}},
		{Python, "for p in x: p.unlink()", Finding{Write: true, Destroy: true}},
		{Python, "Path('a').write_text('x')", Finding{Write: true, Writes: []string{"a"}}},
		{Python, "open('a', 'w').write('x')", Finding{Write: true, Writes: []string{"a"}}},
		{Python, "open(file, mode='a')", Finding{Write: true}},
		{Python, "print(open('a').read())", Finding{Reads: []string{"a"}}},
		{Python, "print('x'.replace('a', 'b'))", Finding{}},
		{Python, "import requests; requests.post('http://h/x', json={})", Finding{Network: true, Hosts: []string{"http://h/x"}}},
		{Python, "import requests; print(requests.__version__)", Finding{}},
		{Python, "s=socket.socket(socket.AF_INET); s.connect(('example.com', 80))", Finding{Network: true, Hosts: []string{"example.com"}}},
		{Python, "import json,urllib.parse; urllib.parse.quote('x')", Finding{}},
		{Python, "cur.execute('DROP TABLE users')", Finding{Write: true, Destroy: true}},
		{Python, "os.kill(1, 9)", Finding{Destroy: true}},
		{Python, "os.setuid(0)", Finding{Privilege: true}},
		{Python, "def system(x): pass", Finding{}},

		{Node, "require('fs').rmSync('dist',{recursive:true})", Finding{Write: true, Destroy: true, Deletes: []string{"dist"}}},
		{Node, "console.log(process.version)", Finding{}},
		{Node, "console.log('require(\"fs\").rmSync(\"x\")') // fs.rmSync('x')", Finding{}},
		{Node, "const {execSync: e} = require('node:child_process'); e('rm x')", Finding{Shell: []string{"rm x"}}},
		{Node, "const cp = require('child_process')\ncp.spawnSync('rm', ['-rf', 'x'], {stdio: 'inherit'})", Finding{Argv: [][]string{{"rm", "-rf", "x"}}}},
		{Node, "const cp = require('child_process')\ncp.spawn('rm x', {shell: true})", Finding{Shell: []string{"rm x"}}},
		{Node, "require('child_process').exec(`rm ${x}`)", Finding{Shell: []string{"rm \uE000"}}},
		{Node, "console.log(`${require('child_process').execSync('rm x')}`)", Finding{Shell: []string{"rm x"}}},
		{Node, "import fs from 'fs'; fs.promises.unlink('a')", Finding{Write: true, Destroy: true, Deletes: []string{"a"}}},
		{Node, "import {rm} from 'fs/promises'; await rm('a')", Finding{Write: true, Destroy: true, Deletes: []string{"a"}}},
		{Node, "/rm/.exec(s); x.replace(/\"/g, ''); child_process.execSync('id')", Finding{Shell: []string{"id"}}},
		{Node, "if (x) /\"/.test(y); execSync('id'); z = \"/\"", Finding{Shell: []string{"id"}}},
		{Node, "a = b / c; execSync('id'); d = e / f", Finding{Shell: []string{"id"}}},
		{Node, "fetch('https://example.com')", Finding{Network: true, Hosts: []string{"https://example.com"}}},
		{Node, "fs.writeFileSync('a', 'x'); fs.readFileSync('b')", Finding{Write: true, Writes: []string{"a"}, Reads: []string{"b"}}},
		{Node, "await $`rm -rf x`", Finding{Shell: []string{"rm -rf x"}}},
		{Node, "http.createServer(f).listen(80)", Finding{Network: true}},
		{Node, "eval('fs.rmSync(\"x\")')", Finding{Write: true, Destroy: true, Deletes: []string{"x"}}},

		{Perl, "print `ls`", Finding{Shell: []string{"ls"}}},
		{Perl, "s/a/b/", Finding{}},
		{Perl, "system 'rm', '-rf', 'x'", Finding{Argv: [][]string{{"rm", "-rf", "x"}}}},
		{Perl, "system('rm -rf x') == 0 or die", Finding{Shell: []string{"rm -rf x"}}},
		{Perl, "system(qw(rm -rf x))", Finding{Argv: [][]string{{"rm", "-rf", "x"}}}},
		{Perl, "exec \"rm $x\"", Finding{Shell: []string{"rm \uE000"}}},
		{Perl, "print qx{rm x}; # `ls`", Finding{Shell: []string{"rm x"}}},
		{Perl, "print \"@{[`id`]}\"", Finding{Shell: []string{"id"}}},
		{Perl, "s/x/`id`/e", Finding{Shell: []string{"id"}}},
		{Perl, "s{x}{system('id')}gee; y/a/b/", Finding{Shell: []string{"id"}}},
		{Perl, "print 'system(\"id\")'; print q{`id`}", Finding{}},
		{Perl, "$s = 1; $h{s} = 2; $x->y(3); system('id')", Finding{Shell: []string{"id"}}},
		{Perl, "print $'; print $\"; system('id'); print $`;", Finding{Shell: []string{"id"}}},
		{Perl, "split /'/; system('id'); split /'/", Finding{Shell: []string{"id"}}},
		{Perl, "print <<'E';\nsystem('id')\nE\nunlink 'a', 'b'", Finding{Write: true, Destroy: true, Deletes: []string{"a", "b"}}},
		{Perl, "=pod\n\nsystem('id')\n\n=cut\n1", Finding{}},
		{Perl, "open(my $f, '>', 'a'); open(F, \">>b\"); open(G, 'c')", Finding{Write: true, Writes: []string{"a", "b"}, Reads: []string{"c"}}},
		{Perl, "open(F, 'id|'); open(my $g, '-|', 'ls', '-l'); open F, \"| cat\"", Finding{Shell: []string{"id", "cat"}, Argv: [][]string{{"ls", "-l"}}}},
		{Perl, "use LWP::Simple; print get('http://h/')", Finding{Network: true, Hosts: []string{"http://h/"}}},
		{Perl, "unlink glob('*')", Finding{Write: true, Destroy: true}},
		{Perl, "while(<>){print if /a/}", Finding{}},

		{Ruby, "puts 1", Finding{}},
		{Ruby, "system 'rm', '-rf', 'x'", Finding{Argv: [][]string{{"rm", "-rf", "x"}}}},
		{Ruby, "system({'A'=>'b'}, 'rm x', out: '/dev/null')", Finding{Shell: []string{"rm x"}}},
		{Ruby, "puts `rm x`, %x(id)", Finding{Shell: []string{"rm x", "id"}}},
		{Ruby, "puts \"#{`id`}\"", Finding{Shell: []string{"id"}}},
		{Ruby, "`rm #{x}`", Finding{Shell: []string{"rm \uE000"}}},
		{Ruby, "require 'fileutils'; FileUtils.rm_rf('x')", Finding{Write: true, Destroy: true, Deletes: []string{"x"}}},
		{Ruby, "FileUtils.rm_rf %w[a b]", Finding{Write: true, Destroy: true, Deletes: []string{"a", "b"}}},
		{Ruby, "File.delete('a'); File.write 'b', 'x'; File.open('c', 'w') { |f| f << 1 }", Finding{Write: true, Destroy: true, Deletes: []string{"a"}, Writes: []string{"b", "c"}}},
		{Ruby, "puts 'system(\"id\")' # `id`\nputs %q(`id`)", Finding{}},
		{Ruby, "x = <<~E\n  system('id')\nE\nIO.popen(['rm', 'x'])", Finding{Argv: [][]string{{"rm", "x"}}}},
		{Ruby, "require 'net/http'; Net::HTTP.get(URI('http://h/'))", Finding{Network: true, Hosts: []string{"http://h/"}}},
		{Ruby, "require 'open-uri'; URI.open('http://h/').read; open('|id')", Finding{Network: true, Hosts: []string{"http://h/"}, Shell: []string{"id"}}},
		{Ruby, "b = 4; a = b /2; x.split /'/; system('id')", Finding{Shell: []string{"id"}}},
		{Ruby, "Open3.capture2e('id')", Finding{Shell: []string{"id"}}},

		{PHP, "system('rm x'); echo `id`;", Finding{Shell: []string{"rm x", "id"}}},
		{PHP, "<html>`no`<?php \\shell_exec(\"rm $x\"); ?> `no`", Finding{Shell: []string{"rm \uE000"}}},
		{PHP, "unlink('a'); file_put_contents('b', 1); # system('x')", Finding{Write: true, Destroy: true, Deletes: []string{"a"}, Writes: []string{"b"}}},
		{PHP, "echo file_get_contents('http://h/'); echo file_get_contents('a');", Finding{Network: true, Hosts: []string{"http://h/"}, Reads: []string{"a"}}},
		{PHP, "$c = curl_init('http://h/'); curl_exec($c);", Finding{Network: true, Hosts: []string{"http://h/"}}},
		{PHP, "echo 'system(\"id\")'; // system('id')", Finding{}},

		{Lua, "os.execute('rm x')", Finding{Shell: []string{"rm x"}}},
		{Lua, "os.execute [[rm x]] -- os.execute('y')", Finding{Shell: []string{"rm x"}}},
		{Lua, "--[[ os.execute('x') ]] print(io.popen('ls'):read('a')) os.remove('f')", Finding{Shell: []string{"ls"}, Write: true, Destroy: true, Deletes: []string{"f"}}},
		{Lua, "io.open('a', 'w'); os.execute('rm ' .. x)", Finding{Write: true, Writes: []string{"a"}, Shell: []string{"rm \uE000"}}},
		{Lua, "print('os.execute(1)')", Finding{}},
	}
	for _, tt := range tests {
		if got := Read(tt.lang, tt.text); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %q\n got %+v\nwant %+v", tt.lang, tt.text, got, tt.want)
		}
	}
}
