package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
)

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
