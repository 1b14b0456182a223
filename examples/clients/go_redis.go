package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

func main() {
	pem, err := os.ReadFile(os.Getenv("CA"))
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs:    []string{os.Getenv("HOST") + ":6379"},
		Username: "app",
		Password: os.Getenv("PASSWORD"),
		// Redirections name addresses of pods: verify the name of the Service instead.
		TLSConfig:       &tls.Config{RootCAs: roots, ServerName: "valkey-secure-client"},
		// Ask for the new owners soon, and do not dial a lost member again and again.
		ClusterStateReloadInterval: time.Second,
		DialerRetries:              1,
		DialTimeout:                time.Second,
		MaxRedirects:               20,
		MinRetryBackoff:            50 * time.Millisecond,
		MaxRetryBackoff:            500 * time.Millisecond,
	})

	seconds, _ := strconv.Atoi(os.Args[1])
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	calls, failed := 0, 0
	errors := map[string]int{}
	var slowest time.Duration
	for time.Now().Before(end) {
		began := time.Now()
		if err := client.Set(context.Background(), fmt.Sprintf("app:%d", calls%5000), calls, 0).Err(); err != nil {
			failed++
			errors[err.Error()]++
		}
		slowest = max(slowest, time.Since(began))
		calls++
		time.Sleep(2 * time.Millisecond)
	}
	fmt.Printf("%d calls, %d errors %v, slowest %.2f s\n", calls, failed, errors, slowest.Seconds())
}
