# A static binary and nothing else. The build has no repository (.dockerignore), so what it
# is made of is told:
#
#   docker build -t koine --build-arg COMMIT=$(git rev-parse HEAD) --build-arg DATE=$(git log -1 --format=%cI) .
#   docker run -d --name koine -p 8080:8080 -v koine:/data koine
#   docker cp koine:/data/admin-key .
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY internal/third_party internal/third_party
RUN go mod download
COPY . .
ARG VERSION= COMMIT= DATE=
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X koine/cmd/koine/internal/buildinfo.version=$VERSION -X koine/cmd/koine/internal/buildinfo.commit=$COMMIT -X koine/cmd/koine/internal/buildinfo.date=$DATE" -o /out/koine ./cmd/koine
RUN mkdir -m 0700 /out/data && mkdir -m 1777 /out/tmp

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/koine /koine
COPY --from=build /out/tmp /tmp
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
# There is no shell: the binary asks the server whether it is ready.
HEALTHCHECK --interval=10s --timeout=5s --start-period=1m CMD ["/koine", "health"]
ENTRYPOINT ["/koine"]
CMD ["serve", "--data", "/data/store", "--listen", ":8080", "--auth", "keys", "--admin-key-file", "/data/admin-key", "--log-format", "json"]
