package http

import (
	"unsafe"

	"millstream/internal/abi"
)

//go:wasmimport millstream:plugin/http@0.2.0 send
func hostSend(requests unsafe.Pointer, count uint32, answers unsafe.Pointer)

const (
	requestWords = 9
	answerWords  = 6
)

func send(requests []Request) []Answer {
	if len(requests) == 0 {
		return nil
	}
	list := abi.New(2)
	for i, item := range list.List(0, len(requests), requestWords) {
		request := &requests[i]
		method := request.Method
		if method == "" {
			method = "GET"
		}
		item.Text(0, method)
		item.Text(2, request.URL)
		for j, header := range item.List(4, len(request.Headers), 4) {
			header.Text(0, request.Headers[j].Name)
			header.Text(2, request.Headers[j].Value)
		}
		item.Bytes(6, request.Body)
		item[8] = request.TimeoutMS
		if item[8] == 0 {
			item[8] = ^uint32(0)
		}
	}
	got := new([2]uint32)
	hostSend(unsafe.Pointer(uintptr(list[0])), list[1], unsafe.Pointer(got))
	answers := make([]Answer, got[1])
	words := abi.Words(got[0], got[1]*answerWords)
	for i := range answers {
		item := words[i*answerWords:]
		if item[0]&0xff != 0 {
			answers[i].Err = failed(item[1]&0xff, abi.String(item[2], item[3]))
			continue
		}
		response := &Response{Status: int(item[1] & 0xffff), Body: append([]byte(nil), abi.Memory(item[4], item[5])...)}
		headers := abi.Words(item[2], item[3]*4)
		for j := uint32(0); j < item[3]; j++ {
			header := headers[j*4:]
			response.Headers = append(response.Headers, Header{abi.String(header[0], header[1]), abi.String(header[2], header[3])})
		}
		answers[i].Response = response
	}
	return answers
}
