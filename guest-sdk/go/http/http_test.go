//go:build !wasip1

package http

import "testing"

func TestWhoAnswersInATest(t *testing.T) {
	if _, err := Get("http://a"); err == nil {
		t.Fatal("somebody answered")
	}
	Answering(func(request Request) (*Response, error) {
		return &Response{Status: 503, Headers: []Header{{"X-Url", request.URL}}}, nil
	})
	response, err := Get("http://a")
	if err != nil || response.Header("x-url") != "http://a" || response.OK() == nil {
		t.Fatal(response, err)
	}
	if (&Response{Status: 204}).OK() != nil || failed(1, "away").Error() != "unreachable: away" {
		t.Fatal("success is success")
	}
}
