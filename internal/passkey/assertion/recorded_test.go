package assertion_test

// recordedInChromium is a decision that Chromium 148 made with a virtual
// CTAP 2.1 authenticator.
const recordedInChromium = `{
	"digest": "b111c6e1d318f203063e5c16bab43c108326af0aa2f7b65760c95547a43dbe52",
	"rpId": "vogt.localhost",
	"origin": "http://vogt.localhost:34011",
	"evidence": {
		"credentialId": "9vtn013vkDlrqBASD1zcqSO1jrdFIhvJUYg+3xHOHWk=",
		"publicKey": "pQECAyYgASFYID6G2GqwAevChO5etwKXJvsd/HI8vYwwA/dfhN4JrZFmIlgg9UhTUGGx0DS5SpFoVOJAX5pdXpolR/AeQ0Rd1XOZOkU=",
		"authenticatorData": "eu9ZLlb+w6YFDG2pPqrHXdic6rf58pikfe1ScuQHXagFAAAAAw==",
		"clientDataJSON": "eyJ0eXBlIjoid2ViYXV0aG4uZ2V0IiwiY2hhbGxlbmdlIjoic1JIRzRkTVk4Z01HUGx3V3VyUThFSU1tcndxaTk3WlhZTWxWUjZROXZsSSIsIm9yaWdpbiI6Imh0dHA6Ly92b2d0LmxvY2FsaG9zdDozNDAxMSIsImNyb3NzT3JpZ2luIjpmYWxzZX0=",
		"signature": "MEUCIQCHARPN9iDM5azYgnWaoYTJgiMeFh1EiX4XIBIRi5q/9gIgB68vltDSuZv4Qy7fczF3qgo4/vYxAEe46q7Jsn4KwR4="
	}
}`
