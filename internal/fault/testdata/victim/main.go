// Command victim passes one fault point three times and prints a line before
// each, so that a test sees how far it came.
package main

import (
	"fmt"

	"vogt/internal/fault"
)

func main() {
	for i := 1; i <= 3; i++ {
		fmt.Println("hit", i)
		fault.Point("victim.loop")
	}
	fmt.Println("end")
}
