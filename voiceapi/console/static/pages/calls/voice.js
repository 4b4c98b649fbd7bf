// Speaking and listening by what the browser has: speech recognition and speech synthesis.

const Recognition = window.SpeechRecognition ?? window.webkitSpeechRecognition;

export const canListen = Boolean(Recognition);
const canSpeak = "speechSynthesis" in window && typeof SpeechSynthesisUtterance === "function";

// What the API of the browser calls its errors, in words.
const ERRORS = {
  "no-speech": "Nothing was heard.",
  "audio-capture": "There is no microphone.",
  "not-allowed": "The browser doesn't let this page use the microphone.",
  "service-not-allowed": "The browser doesn't let this page use its speech recognition.",
  "language-not-supported": "The browser's speech recognition doesn't know this language.",
  network: "The browser's speech recognition can't be reached.",
};

/** The whole sentences at the beginning of a text that has come up to the end of a word. */
export const sentences = (text) => text.match(/.*?(?:[.!?…۔؟]["'”’»)\]]*(?:\s+|$)|[。！？।॥]["'”’」』）]*\s*|\n+)/gsuy) ?? [];

/** Say a text, after those before it; resolves when it has been said, or can't be. */
export function speak(text, language, signal) {
  return new Promise((resolve) => {
    if (!canSpeak || !text.trim() || signal.aborted) return resolve();
    const utterance = new SpeechSynthesisUtterance(text);
    utterance.lang = language;
    utterance.addEventListener("end", () => resolve(), { once: true });
    utterance.addEventListener("error", () => resolve(), { once: true });
    signal.addEventListener("abort", () => {
      speechSynthesis.cancel();
      resolve();
    }, { once: true });
    speechSynthesis.speak(utterance);
  });
}

/** Listen to one utterance; resolves with its text, empty when the signal ended it. Raises an Error in words. */
export function listen(language, signal, onPart = () => {}) {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return resolve("");
    const recognition = new Recognition();
    let text = "";
    recognition.lang = language;
    recognition.interimResults = true;
    recognition.addEventListener("result", (event) => {
      const heard = [...event.results].map((result) => result[0].transcript).join("");
      onPart(heard);
      if ([...event.results].every((result) => result.isFinal)) text = heard;
    });
    recognition.addEventListener("error", (event) => {
      if (event.error !== "aborted") reject(new Error(ERRORS[event.error] ?? `Speech recognition failed: ${event.error}.`));
    });
    recognition.addEventListener("end", () => (text || signal.aborted ? resolve(text) : reject(new Error(ERRORS["no-speech"]))));
    signal.addEventListener("abort", () => recognition.abort(), { once: true });
    recognition.start();
  });
}
