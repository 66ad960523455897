package main

import (
	"os"
	"testing"

	"vogt/internal/vogtdtest"
)

func TestMain(m *testing.M) { os.Exit(vogtdtest.Main(m)) }
