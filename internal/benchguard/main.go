package main

import (
	"bufio"
	"context"
	"errors"
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

// The graph has films with performances by people, as the film graph of the other benchmarks.
const (
	films           = 20_000
	people          = 8_000
	perFilm         = 3
	graphStatements = films*(2+perFilm*3) + people
	namespace       = "http://films.example/"
	label           = "http://www.w3.org/2000/01/rdf-schema#label"
	rdfType         = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
)

// writeGraph writes the graph as N-Quads, always with the same content.
func writeGraph(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	for p := range people {
		fmt.Fprintf(w, "<%sperson/%d> <%s> \"Person %d of the cast\" .\n", namespace, p, label, p)
	}
	for i := range films {
		film := fmt.Sprintf("<%sfilm/%d>", namespace, i)
		fmt.Fprintf(w, "%s <%s> <%sFilm> .\n%s <%s> \"The film number %d\" .\n", film, rdfType, namespace, film, label, i)
		for n := range perFilm {
			performance := fmt.Sprintf("<%sperformance/%d-%d>", namespace, i, n)
			fmt.Fprintf(w, "%s <%sstarring> %s .\n", film, namespace, performance)
			fmt.Fprintf(w, "%s <%sactor> <%sperson/%d> .\n", performance, namespace, namespace, (i*7+n*131)%people)
			fmt.Fprintf(w, "%s <%srole> \"Role %d\" .\n", performance, namespace, n)
		}
	}
	return errors.Join(w.Flush(), f.Close())
}
