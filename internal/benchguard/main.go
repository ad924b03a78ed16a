package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("benchguard: ")
	var o options
	flag.StringVar(&o.base, "base", "", "the `binary` to compare with")
	flag.StringVar(&o.head, "head", "", "the `binary` to compare")
	flag.StringVar(&o.out, "out", ".", "the `directory` for base.txt and head.txt")
	flag.IntVar(&o.rounds, "rounds", 8, "number of rounds")
	flag.Float64Var(&o.scale, "scale", 1, "multiplies the requests of each row")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		log.Fatal(err)
	}
}

type options struct {
	base, head string
	out        string
	rounds     int
	scale      float64
}

// run measures both sides in turns; the first side alternates by round.
func run(ctx context.Context, o options) error {
	work, err := os.MkdirTemp("", "benchguard-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	sides := []*side{{name: "base", binary: o.base}, {name: "head", binary: o.head}}
	for _, s := range sides {
		if s.out, err = os.Create(filepath.Join(o.out, s.name+".txt")); err != nil {
			return err
		}
		defer s.out.Close()
		s.dir = filepath.Join(work, s.name)
		if err := os.Mkdir(s.dir, 0o700); err != nil {
			return err
		}
	}
	data := filepath.Join(work, "graph.nq")
	if err := writeGraph(data); err != nil {
		return err
	}
	for round := range o.rounds {
		for i := range sides {
			s := sides[(round+i)%2]
			if err := s.measureRound(ctx, data, o.scale); err != nil {
				return fmt.Errorf("%s, round %d: %w", s.name, round+1, err)
			}
		}
		log.Printf("round %d of %d", round+1, o.rounds)
	}
	return nil
}
